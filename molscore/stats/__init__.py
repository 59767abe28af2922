"""Metrics and statistics over predictions; numpy only."""

"""molscore.stats"""

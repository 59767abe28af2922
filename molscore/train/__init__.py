"""molscore.train"""

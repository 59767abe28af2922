"""molscore.api"""

"""molscore.data"""

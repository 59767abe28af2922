"""molscore.score"""

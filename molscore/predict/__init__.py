"""molscore.predict"""

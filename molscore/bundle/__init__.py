"""molscore.bundle"""

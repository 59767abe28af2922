"""molscore.chem"""

"""molscore.cli"""

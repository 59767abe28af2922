"""molscore.nn"""

"""molscore.report"""

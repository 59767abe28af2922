"""How far to trust a prediction: intervals, calibrated classes, domain, nearest neighbours."""

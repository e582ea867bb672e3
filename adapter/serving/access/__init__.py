"""Who asks, and whether he may."""

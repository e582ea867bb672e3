"""What people ask of a running adapter."""

"""Judges that are code: what the launch path did, and attributes that no class has."""

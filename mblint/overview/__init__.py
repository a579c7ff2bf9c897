"""A whole repository at a glance: what every launch resolves to, who set it, what it needs and what is found in it."""

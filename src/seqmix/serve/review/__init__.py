"""Which answers may be wrong, and which open sentences need no person."""

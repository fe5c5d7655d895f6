"""Several taggers that predict as one."""

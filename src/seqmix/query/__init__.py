"""Query policies: what to ask next. numpy and scipy only."""

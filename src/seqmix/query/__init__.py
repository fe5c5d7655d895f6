"""What to ask next: policies that choose sentences from a pool. numpy and scipy only; a plain function is a policy too."""

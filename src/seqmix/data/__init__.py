"""Values everything else passes around, and the files they come from. numpy only."""

"""What `seqmix info` says of projects and runs."""

"""What a front end is told of its devices: configuration, description files, clusters, parameters."""

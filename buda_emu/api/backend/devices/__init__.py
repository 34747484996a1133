"""What a front end can find out about its devices: configuration, description files, clusters, parameters."""

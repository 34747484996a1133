"""What the host does between the programs of an image: its plan, and the windows that it cuts of inputs."""

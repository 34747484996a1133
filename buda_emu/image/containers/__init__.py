"""What lies where in an archive, tar or zip, before a byte of it is unpacked."""

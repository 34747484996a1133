"""One machine for several processes of a front end: where they meet, who serves, what goes over the socket."""

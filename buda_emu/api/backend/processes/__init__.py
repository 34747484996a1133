"""One machine for several processes of a front end: how they find it, which one serves it, and the messages on the
socket.
"""

"""What a page holds, packed parts too."""

import base64
import gzip
import re


def unpack_page(path):
    """The page, and after it what is packed in it."""
    page = path.read_text()
    parts = re.findall(r'<script type="text/plain" class="packed">([^<]*)</script>', page)
    return "\n".join([page, *(gzip.decompress(base64.b64decode(part)).decode() for part in parts)])

"""Tiles and layout: tilize and untilize, the byte image of queue entries, and TMs folded into one tile map."""

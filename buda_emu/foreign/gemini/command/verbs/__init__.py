"""The verbs of `buda-emu gemini`, which work on schedules of the Gemini scheduler."""

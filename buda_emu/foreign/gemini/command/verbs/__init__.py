"""What the verbs of `buda-emu gemini` do: schedules of the Gemini scheduler."""

"""Documents of every kind: netlists, device images, Gemini schedules, Edge TPU packages, VPUX programs.

`kinds` has one row for each kind, with the functions that recognise, open and check its documents, and the protocols of
an opened document and of the module of a kind. The modules of a kind are imported when they are needed; only the
command line, and the commands that kinds have of their own, import this package.

    kind = kind_of("model.bin")
    result = kind.check("model.bin", Options(strict=True))
    print(kind.load("model.bin").summary())
"""

"""Documents of every kind: netlists, device images, Gemini schedules, Edge TPU packages, VPUX programs.

`kinds` has one row for each, which tells it by what it holds and says where it is opened and checked; `protocol` says
what an opened one can do. Above all rooms that know a kind, and used by the command alone.

    kind = kind_of("model.bin")
    result = kind.check("model.bin", Options(strict=True))
    print(kind.load("model.bin", Options()).summary())
"""

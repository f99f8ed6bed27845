"""One backend for each kind of model: everything that depends on the kind, behind one interface.

Nothing outside this room and the models' own files asks what kind of model it has.
"""

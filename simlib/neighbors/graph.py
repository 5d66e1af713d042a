from simlib.neighbors.rounds import Rounds, checked
def nearest(sim,k,*,limit,cheap=None,distance=False,rng=None):
    r=Rounds(checked(sim),k,limit,cheap,distance,rng); r.run(); return r

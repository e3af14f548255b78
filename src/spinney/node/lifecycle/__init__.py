"""How a node begins, stays alive and ends: the guard, the deadline that the guard and the supervisor share,
heartbeats, takeover from a predecessor of the same name, and recovery of the jobs of dead nodes.
"""

"""What a node does beside running jobs, each piece a loop of its own: it reports its load, carries out operators'
orders, sweeps holds, serves files of its folders, removes what is over, wakes its neighbours.
"""

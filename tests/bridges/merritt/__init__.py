"""Tests of the library of Merritt's queue in ZooKeeper, on real servers."""

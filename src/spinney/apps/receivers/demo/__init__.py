"""``make demo-receivers`` drops archives of five simulated receivers into a folder, and shows what the uploader gets.

Meanwhile a bug is opened and mended, so that trees fail and regrow.

``__main__``    the steps of the demo
``simulation``  raw files of a receiver near some tags, whose true bursts are known

Specified by ``tests/apps/receivers/test_demo.py``; other tests compare detections with the bursts that ``simulation``
knows.
"""

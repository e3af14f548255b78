"""``make demo-receivers`` drops archives of five simulated receivers into a folder, and shows what the uploader gets.

Meanwhile a bug is opened and mended, so that trees fail and regrow. The exit code is 0 only when five jobs have failed
by the bug, all uploads complete in the end, each receiver has about as many hits as bursts were simulated, and the
uploader's mail names a plot.

``OUT`` names the folder for all files (``demo-receivers-out``).

``__main__``    the steps of the demo
``simulation``  raw files of a receiver near some tags, whose true bursts are known

Specified by ``tests/apps/receivers/test_demo.py``; other tests compare detections with the bursts that ``simulation``
knows."""

# SPDX-License-Identifier: MIT
# Each frame ends with a sleep of 7 us, by which ../frames_of.c counts frames.  Argument: the number of frames.
# In one frame, data are packed, which calls deflate of zlib.
extends SceneTree

const PLANTED = 30

var frame = 0
var total = 0
var data = PoolByteArray()
var frames = int(OS.get_environment("FRAMES_COUNT")) + 60

func work(rounds):
	var sum = 0
	for i in range(rounds):
		var place = Vector2(i, frame).rotated(0.5) + Vector2(sum % 7, 1)
		sum += int(place.length()) % 13
		if i % 16 == 0:
			sum += ("%d:%d" % [i, sum]).length()
	return sum

func _idle(_delta):
	if frame == 0:
		for i in range(200000):
			data.append(i * i % 251)
	frame += 1
	total += work(2000)
	if frame == PLANTED:
		for i in range(100):
			total += data.compress(File.COMPRESSION_DEFLATE).size() / 1000
	OS.delay_usec(7)
	if frame == frames:
		print("the sum is ", total)
		quit()

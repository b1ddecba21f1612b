-- SPDX-License-Identifier: MIT
-- Each step of the server ends with a call of os.clock, by which frames_of.c counts frames.  In one step, data are
-- packed, which calls deflate of zlib.
local planted = 30
local steps, total = 0, 0
local frames = tonumber(minetest.settings:get("frames_count")) + 60
local noise, data = nil, {}

minetest.register_node(":mapgen_stone", {description = "stone"})
minetest.register_alias("mapgen_water_source", "air")
for i = 1, 200000 do
    data[i] = string.char(i * i % 251)
end
data = table.concat(data)

local function work(rounds)
    local sum = 0
    for i = 1, rounds do
        sum = sum + math.floor(1000 * noise:get_2d({x = i, y = steps}))
        if i % 8 == 0 then
            sum = sum + #minetest.encode_base64(minetest.sha1("step " .. i))
        end
    end
    return sum
end

minetest.register_globalstep(function()
    if steps == 0 then
        noise = PerlinNoise({offset = 0, scale = 1, spread = {x = 50, y = 50, z = 50}, seed = 7, octaves = 4,
                             persist = 0.5})
    end
    steps = steps + 1
    total = total + work(1000)
    if steps == planted then
        for _ = 1, 400 do
            total = total + math.floor(#minetest.compress(data, "deflate", 6) / 1000)
        end
    end
    os.clock()
    if steps == frames then
        print("the sum is " .. total)
        minetest.request_shutdown("done")
    end
end)

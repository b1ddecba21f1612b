-- SPDX-License-Identifier: MIT
-- Twenty steps of the server, which all compute the same sum.
minetest.register_node(":mapgen_stone", {description = "stone"})
minetest.register_alias("mapgen_water_source", "air")

local steps = 0
minetest.register_globalstep(function()
    local sum = 0
    steps = steps + 1
    for i = 1, 20000 do
        sum = (sum * 31 + i) % 65537
    end
    if steps == 20 then
        print("the sum is " .. sum)
        minetest.request_shutdown("done")
    end
end)

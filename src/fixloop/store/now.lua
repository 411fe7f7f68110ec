-- The current time in a shard.

local clock, wall, away = read_clock()
return {seconds(wall), seconds(clock), seconds(away)}

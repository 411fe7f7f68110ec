-- What time it is in a shard.

local clock, wall, away = read_clock()
return {seconds(wall), seconds(clock), seconds(away)}

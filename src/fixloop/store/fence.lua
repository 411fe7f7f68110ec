-- Put before the scripts that give out fencing numbers.
-- A number higher than all before. A Redis that was restarted, or a replica that took over, may have forgotten the last
-- ones it gave out; it has another replication id then, and goes on behind a gap that they cannot have filled.
local FORGOTTEN_AT_MOST = 1000000

local function next_fence(shard)
  local told = redis.pcall('INFO', 'replication')
  local lineage = type(told) == 'string' and string.match(told, 'master_replid:(%x+)')
  local known = redis.call('HGET', shard, 'lineage')
  if lineage and lineage ~= known then
    redis.call('HSET', shard, 'lineage', lineage)
    if known then redis.call('HINCRBY', shard, 'fence', FORGOTTEN_AT_MOST) end
  end
  return string.format('%d', redis.call('HINCRBY', shard, 'fence', 1))
end


-- Prepended to the scripts that give out fencing numbers.
-- Returns a number higher than all before. A restarted Redis, or a promoted replica, may have lost the last ones that
-- were given out. Its replication id is then different, and the numbers continue after a gap larger than any loss.
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


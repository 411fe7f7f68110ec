-- Acquire a lock (K10). KEYS: the shard, the lock. In wall time, because agents go on while the engine is away.

local SHARD, LOCK = KEYS[1], KEYS[2]
local agent, lease = ARGV[1], tonumber(ARGV[2])

local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
-- A malformed lock counts as free.
if redis.call('TYPE', LOCK).ok ~= 'hash' then redis.call('DEL', LOCK) end
local held = redis.call('HMGET', LOCK, 'agent', 'token', 'expires', 'acquired', 'lease')
-- A lease that ends later than possible was set before the clock was turned back.
if tonumber(held[5]) and tonumber(held[3]) and held[3] - now > held[5] + 1 then
  held[3] = string.format('%.6f', now + tonumber(held[5]))
  redis.call('HSET', LOCK, 'expires', held[3])
end
local live = held[1] and held[4] and (tonumber(held[3]) or 0) > now

if live then
  local status = held[1] == agent and 'again' or 'refused'
  return {status, status == 'again' and held[2] or '0', held[1], held[4], held[3], ''}
end

local token = next_fence(SHARD)
local acquired, expires = string.format('%.6f', now), string.format('%.6f', now + lease)
redis.call('HSET', LOCK, 'agent', agent, 'token', token, 'acquired', acquired, 'expires', expires, 'lease', lease)
-- The key outlives the lease, so that a takeover can name the previous owner.
redis.call('PEXPIRE', LOCK, math.ceil(lease * 2000))
return {held[1] and 'forced' or 'granted', token, agent, acquired, expires, held[1] or ''}

-- Release a lock or extend its lease, with the token of its grant. KEYS: the lock. A lease of 0 releases.

local LOCK = KEYS[1]
local token, lease = ARGV[1], tonumber(ARGV[2])

-- A malformed lock counts as lost.
if redis.call('TYPE', LOCK).ok ~= 'hash' then redis.call('DEL', LOCK) end
local held = redis.call('HMGET', LOCK, 'token', 'expires')
if held[1] ~= token then return 'lost' end
if lease == 0 then
  redis.call('DEL', LOCK)
  return 'ok'
end

local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
if (tonumber(held[2]) or 0) <= now then return 'lost' end
redis.call('HSET', LOCK, 'expires', string.format('%.6f', now + lease), 'lease', lease)
redis.call('PEXPIRE', LOCK, math.ceil(lease * 2000))
return 'ok'

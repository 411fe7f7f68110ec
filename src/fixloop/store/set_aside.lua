-- Remove a damaged workflow, whatever its keys hold, if they still hold what was kept. KEYS after the shard's: ended,
-- retired, changes, then every key of the workflow; ARGV after the first four: the digest of each key's dump.
-- Its tickets and deadlines stay in lists that drop the members of missing workflows by themselves.

local ENDED, RETIRED, CHANGES = KEYS[9], KEYS[10], KEYS[11]
local workflow, feature, number, retired = unpack(ARGV)

for i = 12, #KEYS do
  if redis.sha1hex(redis.call('DUMP', KEYS[i]) or '') ~= ARGV[i - 7] then return 'changed' end
end

for i = 12, #KEYS do redis.call('DEL', KEYS[i]) end
redis.call('ZREM', WORKFLOWS, workflow)
redis.call('ZREM', ENDED, workflow)
-- Another workflow of the feature may be live. A live entry that names no workflow is deleted, too.
local living = redis.call('HGET', LIVE, feature)
local other = living and string.match(living, '^%d+$') or living and string.match(living, '^%x+%-%d+%-(%d+)$')
if living and (not other or other == number) then redis.call('HDEL', LIVE, feature) end
local newest = string.match(redis.call('HGET', RETIRED, feature) or '0', '^%d+') or '0'
if tonumber(number) >= tonumber(newest) then redis.call('HSET', RETIRED, feature, number .. ' ' .. retired) end
announce(CHANGES, workflow, 0)
return 'ok'

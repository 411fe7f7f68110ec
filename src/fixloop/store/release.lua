-- Return a claimed ticket: same attempt, next fence; its limit stops (K40).

local WORKFLOW = KEYS[9]
local id, owner, fence, poison, workflow, delay = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])

local found = redis.call('HMGET', WORKFLOW, 's:' .. id, 't:' .. id, 'parked')
local state = read_state(found[1])
if not state or state.fence ~= fence or state.owner ~= owner then return '' end

if state.kind == 'c' then
  redis.call('ZREM', LEASES, id)
  redis.call('HDEL', OWNERS, id)
elseif state.kind == 'p' then
  redis.call('ZREM', PENDING, state.rest)
end
if state.limit ~= '' then redis.call('HDEL', WORKFLOW, 'd:' .. state.limit) end
if found[3] then
  hold_back(WORKFLOW, id, {kind = 'c', fence = 0, owner = '', limit = ''})
elseif delay > 0 then
  local ready = seconds(read_clock() + delay)
  redis.call('ZADD', DELAYED, ready, id)
  redis.call('HSET', WORKFLOW, 's:' .. id, state_text('d', 0, '', '', ready))
else
  local member = offer(cjson.decode(found[2]), (read_clock()), FIRST)
  redis.call('HSET', WORKFLOW, 's:' .. id, state_text('p', 0, '', '', member))
end
if poison == '1' then redis.call('HINCRBY', WORKFLOW, 'n:' .. id, 1) end
return found[2]

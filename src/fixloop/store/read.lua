-- One workflow's current state, with the shard's clock.

local WORKFLOW, HISTORY = KEYS[9], KEYS[10]

local hash = as_table(redis.call('HGETALL', WORKFLOW))
local clock, wall, away = read_clock()
local tickets, deadlines = {}, {}
for name, value in pairs(hash) do
  local kind, rest = string.sub(name, 1, 2), string.sub(name, 3)
  if kind == 't:' then
    tickets[#tickets + 1] = {rest, value, hash['s:' .. rest] or '', hash['n:' .. rest] or '0'}
  elseif kind == 's:' and not hash['t:' .. rest] then
    tickets[#tickets + 1] = {rest, '', value, '0'}
  elseif kind == 'd:' then
    deadlines[#deadlines + 1] = {rest, value}
  end
end
-- A removed workflow leaves nothing; one that lost its state is still in the lists or has a history.
local is_known = hash.version or redis.call('ZSCORE', WORKFLOWS, string.match(WORKFLOW, '[^:]*$'))
if not is_known then is_known = redis.call('EXISTS', HISTORY) == 1 end
return {seconds(wall), seconds(clock), seconds(away), hash.version or '', head_of(hash.head), hash.snapshot or '',
  hash.stale or '0', plain_fields(hash), tickets, deadlines,
  leant_on(hash.snapshot, HISTORY), is_known and 1 or 0}
